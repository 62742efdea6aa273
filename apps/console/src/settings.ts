import { ID_FORM } from '@tollgate/contracts';
import { KafkaSettings, MessageKeysSettings } from '@tollgate/messaging';
import { DatabaseSettings } from '@tollgate/postgres';
import {
  combine,
  ConfigFileSettings,
  DrainSettings,
  HardToGuess,
  hostText,
  LameDuckSettings,
  Optional,
  Port,
  Satisfies,
  Secret,
  Setting,
  Text,
  TrustedProxiesSettings,
  type ChecksItself,
} from '@tollgate/runtime';
import { TENANT_ROLES } from './access/roles';

const SECRET_MIN_BITS = 80;
const ORIGIN = /^https?:\/\/[^/?#@\s]+$/;
const MAIL_FORM = /^smtps?:\/\/\S{1,1024}$/;
const URL_FORM = /^https?:\/\/[^?#@\s]+$/;

const GROUP_ROLE = `[^=,\\s]{1,128}=(operator|ten_${ID_FORM}:(${TENANT_ROLES.join('|')}))`;
const GROUP_ROLES = new RegExp(`^${GROUP_ROLE}(,${GROUP_ROLE})*$`);

/** Single sign-on needs all of these. */
const SINGLE_SIGN_ON = ['TOLLGATE_OIDC_ISSUER', 'TOLLGATE_OIDC_CLIENT_ID', 'TOLLGATE_OIDC_CLIENT_SECRET'] as const;

/** How people sign in to the console, and how it sends mail. The composition decides whether the console runs. */
export class ConsoleSettings implements ChecksItself {
  @Setting("The console's public origin, such as `https://console.example.com`. Passkeys and cookies depend on it.", {
    byDefault: '`http://localhost:<its port>`',
  })
  @Optional()
  @Text(ORIGIN, 'an http or https origin without a path')
  TOLLGATE_CONSOLE_URL?: string;
  @Setting('OpenID Connect issuer for signing in to the console.')
  @Optional()
  @Text(URL_FORM, 'an http or https URL')
  TOLLGATE_OIDC_ISSUER?: string;
  @Setting('Client id of the console at the OpenID Connect issuer.')
  @Optional()
  @Text(/^[\x21-\x7e]{1,256}$/, '1 to 256 printable characters')
  TOLLGATE_OIDC_CLIENT_ID?: string;
  @Setting('Client secret of the console at the OpenID Connect issuer.')
  @Optional()
  @Secret()
  @Text(/^[\x21-\x7e]{1,512}$/, '1 to 512 printable characters')
  TOLLGATE_OIDC_CLIENT_SECRET?: string;
  @Setting('Domains of verified e-mail addresses that may sign in by OpenID Connect, separated by commas.', {
    byDefault: 'only people with an account',
  })
  @Optional()
  @Text(/^[a-z0-9.-]+(,[a-z0-9.-]+)*$/, 'lower-case domains, separated by commas')
  TOLLGATE_OIDC_DOMAINS?: string;
  @Setting('Roles of groups at the OpenID Connect issuer, such as `ops=operator,acme=ten_…:admin`.', {
    byDefault: 'only the roles of invitations',
  })
  @Optional()
  @Text(GROUP_ROLES, 'pairs of a group and `operator` or `ten_…:role`, separated by commas')
  TOLLGATE_OIDC_ROLES?: string;
  @Setting('The claim of OpenID Connect that names the groups of a person.')
  @Text(/^[\x21-\x7e]{1,128}$/, '1 to 128 printable characters')
  TOLLGATE_OIDC_ROLES_CLAIM: string = 'groups';
  @Setting('SMTP server for invitations and new passwords, such as `smtps://user:password@mail.example.com`.', {
    byDefault: 'links are only shown',
  })
  @Optional()
  @Secret()
  @Satisfies(isMailUrl, 'an smtp or smtps URL (in user and password / is %2F, # %23, ? %3F, @ %40)')
  TOLLGATE_SMTP_URL?: string;
  @Setting('Sender of the mail.')
  @Text(/^[^\s@]+@[^\s@]+$/, 'an e-mail address')
  TOLLGATE_SMTP_FROM: string = 'tollgate@localhost';

  problems(): string[] {
    const [given] = SINGLE_SIGN_ON.filter((name) => this[name] !== undefined);
    const missing = SINGLE_SIGN_ON.filter((name) => this[name] === undefined);
    return given === undefined ? [] : missing.map((name) => `${given} is set: set ${name}, too`);
  }
}

/** A password with special characters ends the host, and the rest looks like a path or options. */
function isMailUrl(text: string): boolean {
  if (!MAIL_FORM.test(text) || !URL.canParse(text)) return false;
  const { hostname, pathname, search, hash } = new URL(text);
  return hostname !== '' && ['', '/'].includes(pathname) && !search.includes('@') && hash === '';
}

/** The standalone form makes one by default. */
export const ConsoleSecret = (byDefault?: string) =>
  combine(
    Setting('Signs the cookies of the console. Its replicas need the same. Make one with `openssl rand -hex 32`.', {
      byDefault,
    }),
    Secret(),
    HardToGuess(SECRET_MIN_BITS),
    Text(/^[\x21-\x7e]{32,256}$/, '32 to 256 printable characters'),
  );

/** Where the console listens as a separate service. */
class ConsoleServiceSettings {
  @Setting('Address of the console.')
  @hostText()
  TOLLGATE_CONSOLE_HOST: string = '127.0.0.1';
  @Setting('Port of the console. 0: any free port.')
  @Port()
  TOLLGATE_CONSOLE_PORT: number = 8082;
  @ConsoleSecret() TOLLGATE_CONSOLE_SECRET!: string;
  @Setting('Origin at which programs call the APIs, for the lines that the console shows.', {
    byDefault: '`TOLLGATE_CONSOLE_URL`',
  })
  @Optional()
  @Text(ORIGIN, 'an http or https origin without a path')
  TOLLGATE_CONSOLE_API_URL?: string;
  @Setting('Origin at which the console itself calls the APIs, where it does not reach their public one.', {
    byDefault: '`TOLLGATE_CONSOLE_API_URL`',
  })
  @Optional()
  @Text(ORIGIN, 'an http or https origin without a path')
  TOLLGATE_CONSOLE_INNER_API_URL?: string;
}

/** All settings of the service besides SERVICE_SETTINGS. */
export const SETTINGS = [
  KafkaSettings,
  MessageKeysSettings,
  DatabaseSettings,
  ConfigFileSettings,
  TrustedProxiesSettings,
  ConsoleSettings,
  ConsoleServiceSettings,
  DrainSettings,
  LameDuckSettings,
] as const;
