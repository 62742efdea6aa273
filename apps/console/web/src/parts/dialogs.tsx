import { useLocation } from '@tanstack/react-router';
import { createContext, type ReactNode, useContext, useEffect, useState } from 'react';

const Shower = createContext<(dialog: ReactNode) => void>(() => {
  throw new Error('A dialog is shown by the content of a Page.');
});

/** Shows a dialog, or none for null. It stays when what opened it leaves, such as a row of a table. */
export const useDialog = () => useContext(Shower);

/** A page with the place of its dialogs. */
export function Dialogs({ children }: { children: ReactNode }) {
  const { pathname } = useLocation();
  const [dialog, setDialog] = useState<ReactNode>(null);
  // The same page of another tenant has none of it.
  useEffect(() => () => setDialog(null), [pathname]);
  return (
    <Shower value={setDialog}>
      {children}
      {dialog}
    </Shower>
  );
}
