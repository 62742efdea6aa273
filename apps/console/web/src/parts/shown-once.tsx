import { Modal } from '@mantine/core';
import type { ReactNode } from 'react';

/** A dialog that ends with a secret which is shown once: a click beside it does not close it. */
export const ShownOnce = (props: { title: string; size?: 'lg'; onClose: () => void; children: ReactNode }) => (
  <Modal opened closeOnClickOutside={false} {...props} />
);
