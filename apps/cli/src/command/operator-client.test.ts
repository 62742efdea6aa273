import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setBudget } from '../money/budget-commands';
import { revoke } from '../keys/key-commands';
import { UsageFailure } from './failure';
import { OperatorClient } from './operator-client';
import { Output } from './output';

const TENANT = 'ten_01m8kxa6kke01rhvempg74tr18';
const asked: string[] = [];
let server: Server;
let client: OperatorClient;
beforeAll(async () => {
  server = createServer(({ method, url }, response) => {
    asked.push(`${method} ${url}`);
    response.writeHead(404).end('{"error":{"code":"not_found","message":"No such key."}}');
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  client = new OperatorClient({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, secret: 's' });
});
afterAll(() => new Promise((closed) => server.close(closed)));
beforeEach(() => void asked.splice(0));

it.each(['.', '..'])('an id %j leads to no other resource, as the budget of the tenant', async (id) => {
  const context = { client, output: new Output(true) };
  await expect(setBudget(context, TENANT, 500, { key: id })).rejects.toThrow(UsageFailure);
  await expect(revoke(context, 'key', TENANT, id)).rejects.toThrow(`'${id}' is not an id.`);
  await expect(client.get(`/tenants/${id}?limit=1`)).rejects.toThrow(UsageFailure);
  expect(asked).toEqual([]);
});

it('any other text is one part of the path', async () => {
  const context = { client, output: new Output(true) };
  for (const id of ['...', '../budget', '%2e%2e', '?x'])
    await expect(setBudget(context, TENANT, 500, { key: id })).rejects.toThrow('has no key with the id');
  const keys = `PUT /_operator/v1/tenants/${TENANT}/keys`;
  expect(asked).toEqual(['...', '..%2Fbudget', '%252e%252e', '%3Fx'].map((part) => `${keys}/${part}/budget`));
});
