import { Anchor, Container, Text, Title } from '@mantine/core';

/** A page that does not exist, or that the person may not see. */
export function NotFound() {
  return (
    <Container size="xs" py="xl" component="main">
      <Title order={1}>Not found</Title>
      <Text mt="md">This page does not exist, or your account may not see it.</Text>
      <Anchor href="/console/">Back to the console</Anchor>
    </Container>
  );
}
