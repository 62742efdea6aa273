import { api, ApiFailure } from '../backend/api';

/** Asks the browser for a passkey of this site, and signs in with it. */
export async function signInWithPasskey(): Promise<void> {
  const options = await api.get<PublicKeyCredentialRequestOptionsJSON>('/auth/passkey/generate-authenticate-options');
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
  const response = jsonOf(await allowed(navigator.credentials.get({ publicKey })));
  await api.post('/auth/passkey/verify-authentication', { response });
}

/** Makes a passkey for the person who is signed in. */
export async function addPasskey(name: string): Promise<void> {
  const options = await api.get<PublicKeyCredentialCreationOptionsJSON>('/auth/passkey/generate-register-options');
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options);
  const response = jsonOf(await allowed(navigator.credentials.create({ publicKey })));
  await api.post('/auth/passkey/verify-registration', { response, name });
}

function jsonOf(credential: Credential | null): unknown {
  if (credential instanceof PublicKeyCredential) return credential.toJSON();
  throw new ApiFailure(0, 'no_passkey', 'The browser returned no passkey.', null);
}

/** The browser rejects when the person cancels, and when it has no passkey of this site. */
async function allowed(asked: Promise<Credential | null>): Promise<Credential | null> {
  try {
    return await asked;
  } catch {
    throw new ApiFailure(0, 'no_passkey', 'No passkey was used. Try again, or sign in by password.', null);
  }
}
