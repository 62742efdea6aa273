import { useQuery } from '@tanstack/react-query';
import type { SignInOptions } from '../../../src/api/answers';
import { api } from '../backend/api';

/** How people can sign in here. */
export const useSignInOptions = () =>
  useQuery({ queryKey: ['sign-in-options'], queryFn: () => api.get<SignInOptions>('/sign-in-options') });
