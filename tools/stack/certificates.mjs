// The certificates of the composed servers, signed by the stack's own authority. Made at the first start, and renewed
// before they expire. Kept with the other secrets.
import 'reflect-metadata';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';
import {
  createHash,
  createPrivateKey,
  randomBytes,
  webcrypto,
  X509Certificate as ParsedCertificate,
} from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DIRECTORY_MODE, writeSecret } from './secrets.mjs';

const DAY_MS = 24 * 60 * 60 * 1_000;
const AUTHORITY_DAYS = 3_650;
const SERVER_DAYS = 365;
/** A start renews certificates that expire within this time. */
const RENEW_DAYS = 60;
/** So that a machine whose clock is slow accepts them, too. */
const BACKDATE_MS = DAY_MS;
const OWNER_MODE = 0o400;
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const SERIAL_BYTES = 16;
const ID_CHARS = 12;
/** The names by which the services connect, and the name for people on this machine. */
const SERVERS = ['postgres', 'redis', 'kafka'];
const LOCALHOST = 'localhost';

/**
 * Creates the files that are missing, do not belong together or expire soon: `tls-ca` and its key, which no container
 * gets; `tls-<server>-cert`, `tls-<server>-key`, and both in one file, `tls-<server>`.
 * @param {string} directory
 * @returns {Promise<string>} a fingerprint; a server must be restarted when it changes
 */
export async function makeCertificates(directory, now = Date.now()) {
  mkdirSync(directory, { recursive: true, mode: DIRECTORY_MODE });
  const read = (name) => (existsSync(join(directory, name)) ? readFileSync(join(directory, name), 'utf8') : undefined);
  const write = (name, content, mode) => writeSecret(join(directory, name), content.trim(), mode);

  // The authority must outlive the certificates that it signs.
  let authority = await readAuthority(read('tls-ca'), read('tls-ca-key'));
  if (!authority || daysLeft(authority.certificate, now) < SERVER_DAYS + RENEW_DAYS) {
    authority = await newAuthority(now);
    write('tls-ca', authority.certificate.toString('pem'));
    write('tls-ca-key', await keyPem(authority.keys.privateKey), OWNER_MODE);
  }
  const fingerprint = createHash('sha256').update(authority.certificate.toString('pem'));
  for (const server of SERVERS) {
    let certificate = readServer(read, server);
    if (!certificate || daysLeft(certificate, now) < RENEW_DAYS || !(await isSignedBy(certificate, authority, now))) {
      const made = await newServer(server, authority, now);
      const key = await keyPem(made.keys.privateKey);
      certificate = made.certificate;
      write(`tls-${server}-key`, key);
      write(`tls-${server}-cert`, certificate.toString('pem'));
      write(`tls-${server}`, `${key}\n${certificate.toString('pem')}`);
    }
    fingerprint.update(certificate.toString('pem'));
  }
  return fingerprint.digest('hex').slice(0, ID_CHARS);
}

const daysLeft = (certificate, now) => (certificate.notAfter.getTime() - now) / DAY_MS;
const isSignedBy = (certificate, { certificate: { publicKey } }, now) =>
  certificate.verify({ publicKey, date: new Date(now) });
const newKeys = () => webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
const keyPem = async (key) => PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');
const commonTo = (now, days) => ({
  // The first bit is the sign, and the number must be positive.
  serialNumber: `01${randomBytes(SERIAL_BYTES - 1).toString('hex')}`,
  notBefore: new Date(now - BACKDATE_MS),
  notAfter: new Date(now + days * DAY_MS),
  signingAlgorithm: ALGORITHM,
});

/**
 * Whether a certificate can be used with a key. A start that ended in the middle, or met a full disk, left an empty
 * file, a part of one, or the files of two certificates.
 */
function belongTogether(certificate, key) {
  try {
    return new ParsedCertificate(certificate).checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}

function readServer(read, server) {
  const [key, certificate] = [read(`tls-${server}-key`), read(`tls-${server}-cert`)];
  if (certificate === undefined || key === undefined || !belongTogether(certificate, key)) return undefined;
  return read(`tls-${server}`) === key + certificate ? new X509Certificate(certificate) : undefined;
}

async function readAuthority(pem, key) {
  if (pem === undefined || key === undefined || !belongTogether(pem, key)) return undefined;
  const privateKey = await webcrypto.subtle.importKey('pkcs8', PemConverter.decodeFirst(key), ALGORITHM, true, [
    'sign',
  ]);
  return { certificate: new X509Certificate(pem), keys: { privateKey } };
}

async function newAuthority(now) {
  const keys = await newKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    ...commonTo(now, AUTHORITY_DAYS),
    // Each authority has another name, so that clients do not confuse it with the old one.
    name: `CN=Tollgate stack ${randomBytes(4).toString('hex')}`,
    keys,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
    ],
  });
  return { certificate, keys };
}

async function newServer(server, authority, now) {
  const keys = await newKeys();
  const certificate = await X509CertificateGenerator.create({
    ...commonTo(now, SERVER_DAYS),
    subject: `CN=${server}`,
    issuer: authority.certificate.subject,
    publicKey: keys.publicKey,
    signingKey: authority.keys.privateKey,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension([
        { type: 'dns', value: server },
        { type: 'dns', value: LOCALHOST },
      ]),
    ],
  });
  return { certificate, keys };
}
