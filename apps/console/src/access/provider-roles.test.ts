import { newId } from '@tollgate/contracts';
import { optionsOf } from '../options';
import { ConsoleSettings } from '../settings';
import { grantedTo } from './provider-roles';

const [ONE, TWO] = [newId('ten'), newId('ten')];

function rolesOf(setting: string) {
  const settings = Object.assign(new ConsoleSettings(), {
    TOLLGATE_OIDC_ISSUER: 'https://login.example.com',
    TOLLGATE_OIDC_CLIENT_ID: 'id',
    TOLLGATE_OIDC_CLIENT_SECRET: 'secret',
    TOLLGATE_OIDC_ROLES: setting,
  });
  return optionsOf(settings).oidc!.roles;
}

it('of several groups in a tenant the strongest role counts, and unknown groups give none', () => {
  const roles = rolesOf(`a=${ONE}:viewer,b=${ONE}:admin,c=${TWO}:billing,ops=operator`);
  const granted = grantedTo(['a', 'b', 'unknown'], roles);
  expect([granted.isOperator, [...granted.roleOf]]).toEqual([false, [[ONE, 'admin']]]);
  expect(grantedTo(['ops', 'c'], roles)).toEqual({ isOperator: true, roleOf: new Map([[TWO, 'billing']]) });
  expect(grantedTo([], roles)).toEqual({ isOperator: false, roleOf: new Map() });
});
