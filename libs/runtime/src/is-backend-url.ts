import { registerDecorator } from 'class-validator';

/** "simulator:", or an absolute http(s) URL that a path can be put behind: without user, query or fragment. */
export function IsBackendUrl(): PropertyDecorator {
  return (target, propertyName) =>
    registerDecorator({
      name: 'isBackendUrl',
      target: target.constructor,
      propertyName: String(propertyName),
      options: {
        message:
          '$property must be "simulator:" or an http(s) URL such as http://127.0.0.1:8000/v1, with a port up to 65535 and without user, query or #',
      },
      validator: { validate: isBackendUrl },
    });
}

function isBackendUrl(value: unknown): boolean {
  if (value === 'simulator:') return true;
  // What `new URL` would forgive (blanks around it, a missing slash, an empty "?") is a slip of the pen here.
  if (typeof value !== 'string' || !/^https?:\/\/[^\s?#@\\/][^\s?#@\\]*$/.test(value) || !URL.canParse(value))
    return false;
  const { hostname, username, password } = new URL(value);
  return hostname !== '' && username === '' && password === '';
}
