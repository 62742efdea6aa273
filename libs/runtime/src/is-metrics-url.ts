import { registerDecorator } from 'class-validator';

/** An absolute http(s) URL without user and fragment. */
export function IsMetricsUrl(): PropertyDecorator {
  return (target, propertyName) =>
    registerDecorator({
      name: 'isMetricsUrl',
      target: target.constructor,
      propertyName: String(propertyName),
      options: { message: '$property must be an http(s) URL such as http://127.0.0.1:8000/metrics' },
      validator: { validate: isMetricsUrl },
    });
}

function isMetricsUrl(value: unknown): boolean {
  if (typeof value !== 'string' || !/^https?:\/\/[^\s#@\\]+$/.test(value) || !URL.canParse(value)) return false;
  return new URL(value).hostname !== '';
}
