import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { BackendTlsConfig } from './backend-config';

export interface TlsProblem {
  /** Absent: the certificate and the key together. */
  field?: 'ca' | 'certificate' | 'key';
  message: string;
}

/** Labels under which OpenSSL reads a certificate. */
const CERTIFICATE = /^-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----/;

/**
 * What makes the PEM texts of a backend unusable, in words without their content. Without this, only the calls of the
 * backend would fail. A text that is not here is not checked. A certificate may have expired: that must not keep a
 * gateway from its start.
 */
export function problemsOfTls({ ca, certificate, key }: BackendTlsConfig): TlsProblem[] {
  const problems: TlsProblem[] = [];
  const refuse = (field: TlsProblem['field'], message: string | null) => {
    if (message !== null) problems.push({ ...(field && { field }), message });
  };
  if (ca !== undefined) refuse('ca', problemOfAuthorities(ca));
  if (certificate !== undefined) refuse('certificate', problemOfCertificate(certificate));
  if (key !== undefined) refuse('key', problemOfKey(key));
  if (certificate !== undefined && key !== undefined && problems.length === 0)
    refuse(undefined, problemOfPair(certificate, key));
  return problems;
}

/** OpenSSL ignores a certificate here that it cannot read, and all after it. It would then trust fewer, or none. */
function problemOfAuthorities(text: string): string | null {
  const certificates = text.split(/(?=-----BEGIN )/).filter((part) => CERTIFICATE.test(part));
  if (certificates.length === 0) return 'must be a text in PEM with at least one certificate: it has none';
  const wrong = certificates.findIndex((part) => reasonOfFailure(() => new X509Certificate(part)) !== null);
  return wrong < 0 ? null : `must be a text in PEM with certificates: number ${wrong + 1} cannot be read`;
}

function problemOfCertificate(text: string): string | null {
  // All certificates of the text, not only the first.
  const why = reasonOfFailure(() => createSecureContext({ cert: text }));
  return why && `must be a text in PEM with our certificate, and then its chain if it has one (OpenSSL: ${why})`;
}

/** OpenSSL's reasons would only mislead: "interrupted or cancelled" is a key that needs a passphrase. */
function problemOfKey(text: string): string | null {
  const why = reasonOfFailure(() => createPrivateKey(text));
  return why && 'must be a text in PEM with a private key that needs no passphrase: it cannot be read';
}

function problemOfPair(certificate: string, key: string): string | null {
  // OpenSSL itself accepts a key whose type differs from the type of the certificate.
  if (!new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key)))
    return 'must have the key of its certificate, which comes before its chain: the two do not belong together';
  const why = reasonOfFailure(() => createSecureContext({ cert: certificate, key }));
  return why && `must have a certificate and a key that can be used together (OpenSSL: ${why})`;
}

/** The reason of OpenSSL why this fails, which has no content of the texts. Null: it does not. */
function reasonOfFailure(use: () => unknown): string | null {
  try {
    use();
    return null;
  } catch (error) {
    const { reason, code } = error as { reason?: string; code?: string };
    return reason ?? code ?? 'unknown';
  }
}
