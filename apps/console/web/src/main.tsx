import '@mantine/core/styles.css';
import './styles.css';
import { Anchor, createTheme, Modal, type CSSVariablesResolver, MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { queries } from './backend/queries';
import { router } from './router';

const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? '';
// Where the library behind modal dialogs looks for the nonce of its style sheet.
Object.assign(globalThis, { __webpack_nonce__: nonce });

// The contrast of the kit's default shades is too low for text.
const theme = createTheme({
  respectReducedMotion: true,
  primaryColor: 'indigo',
  primaryShade: { light: 7, dark: 8 },
  components: {
    // As large as the text around it.
    Anchor: Anchor.extend({ defaultProps: { inherit: true } }),
    // The element is a header, and a page has one banner.
    Modal: Modal.extend({
      defaultProps: { closeButtonProps: { 'aria-label': 'Close' }, attributes: { header: { role: 'none' } } },
    }),
  },
});

/** Secondary text of the kit has too little contrast, too. */
const readable: CSSVariablesResolver = () => ({
  variables: {},
  light: { '--mantine-color-dimmed': '#495057', '--mantine-color-placeholder': '#495057' },
  dark: { '--mantine-color-dimmed': '#ced4da', '--mantine-color-placeholder': '#ced4da' },
});

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      defaultColorScheme="auto"
      cssVariablesResolver={readable}
      getStyleNonce={() => nonce}
    >
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
