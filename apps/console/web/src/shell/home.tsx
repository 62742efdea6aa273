import { Code, Stack, Text, Title } from '@mantine/core';
import { Navigate } from '@tanstack/react-router';
import { useState } from 'react';
import { askedPage } from './asked-page';
import { usePerson } from '../backend/me';

/** Leads to the page that was asked for before the sign-in, or else to the first tenant of the person. */
export function Home() {
  const { tenants, isOperator } = usePerson();
  const [first] = tenants;
  const [asked] = useState(askedPage.get);
  if (asked !== null) return <Navigate to="/" href={asked} replace />;
  if (first) return <Navigate to="/t/$tenantId/overview" params={{ tenantId: first.id }} replace />;
  if (isOperator) return <Navigate to="/operator/fleet" replace />;
  return (
    <Stack>
      <Title order={1}>No tenant yet</Title>
      <Text>Your account belongs to no tenant. Ask the owner of a tenant for an invitation.</Text>
      <Text>
        An operator makes tenants in the console, or with <Code>npx tollgate tenant create</Code>.
      </Text>
    </Stack>
  );
}
