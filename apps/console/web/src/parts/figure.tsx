import { Card, Text } from '@mantine/core';
import type { ReactNode } from 'react';

/** One number with its name, and a line on what it means. */
export function Figure({ title, about, children }: { title: string; about: ReactNode; children: ReactNode }) {
  return (
    <Card withBorder>
      <Text size="sm" fw={600}>
        {title}
      </Text>
      <Text fz={26} fw={700} className="figures" data-figure={title}>
        {children}
      </Text>
      <Text size="sm">{about}</Text>
    </Card>
  );
}
