import 'reflect-metadata';
import { RequestMethod, type Type } from '@nestjs/common';
import { ManagementModule } from '../management/management.module';
import { MANAGEMENT_ROUTES } from '../management/routes';
import { SCOPE_METADATA } from '../management/token-guard';
import { OperatorModule } from '../operator/operator.module';
import { OPERATOR_ROUTES } from '../operator/routes';
import { allowedMethods, type RouteTable, routesOf } from './route-table';

interface Bound {
  path: string;
  method: string;
  handler: object;
}

/** The controllers of a module and of those that it imports. */
function controllersOf(module: Type): Type[] {
  const listed = (name: string) => (Reflect.getMetadata(name, module) ?? []) as Type[];
  return [...listed('controllers'), ...listed('imports').flatMap(controllersOf)];
}

/**
 * The routes that Nest binds for the controllers of a module, without the routes for all methods, which only refuse.
 */
function boundBy(module: Type): Bound[] {
  return controllersOf(module).flatMap((controller) => {
    const handlers = Object.values(Object.getOwnPropertyDescriptors(controller.prototype as object)).map(
      ({ value }) => value as object,
    );
    return handlers.flatMap((handler) => {
      const method = Reflect.getMetadata('method', handler) as RequestMethod | undefined;
      if (method === undefined || method === RequestMethod.ALL) return [];
      return pathsOf(controller).flatMap((prefix) =>
        pathsOf(handler).map((path) => ({
          path: inTable(`${prefix}/${path}`),
          method: RequestMethod[method].toLowerCase(),
          handler,
        })),
      );
    });
  });
}

const pathsOf = (target: object): string[] => [Reflect.getMetadata('path', target) as string | string[]].flat();

/** `a//:id/` → `/a/{id}` */
const inTable = (path: string): string => `/${path.split('/').filter(Boolean).join('/')}`.replaceAll(/:(\w+)/g, '{$1}');

const named = ({ path, method }: { path: string; method: string }): string => `${method} ${path}`;

it.each<[string, Type, RouteTable<unknown>]>([
  ['management', ManagementModule, MANAGEMENT_ROUTES],
  ['operator', OperatorModule, OPERATOR_ROUTES],
])('the controllers of the %s API bind exactly the routes of its table', (_, module, table) => {
  const bound = boundBy(module).map(named);
  expect(bound.sort()).toEqual(routesOf(table).map(named).sort());
});

it('an endpoint of the management API requires the scope of its route', () => {
  const scopes = boundBy(ManagementModule).map(({ handler, ...route }) => [
    named(route),
    Reflect.getMetadata(SCOPE_METADATA, handler) as string,
  ]);
  expect(scopes.sort()).toEqual(
    routesOf(MANAGEMENT_ROUTES)
      .map((route) => [named(route), route.operation.scope])
      .sort(),
  );
});

it.each([
  ['/_operator/v1/tenants', 'GET, HEAD, POST'],
  ['/_operator/v1/tenants/x/budget', 'GET, HEAD, PUT'],
  ['/_operator/v1/tenants/x/keys/y', 'PATCH, DELETE'],
  // The path of the comparison matches before that of a run.
  ['/_operator/v1/reconcile/backends', 'GET, HEAD'],
  ['/metrics', 'GET, HEAD'],
  ['/%6Detrics', 'GET, HEAD'],
  ['/_operator/v1/tenants/%zz/budget', null],
  ['/_operator/v1%2Ftenants', null],
  ['/_operator/v1/tenants//budget', null],
  ['/_operator/v1/tenants/', null],
  ['/_operator/v1/openapi.yml', null],
])('Allow of %s is %s', (path, methods) => expect(allowedMethods(OPERATOR_ROUTES, path)).toBe(methods));
