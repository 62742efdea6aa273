import { type CanActivate, createParamDecorator, type ExecutionContext, Injectable } from '@nestjs/common';
import type { Author } from '@tollgate/contracts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { receiveBody } from '../../accept/receive-body';
import { originOf } from '../../http/account/origin';
import { ApiError } from '../../http/api-error';
import { refuseUnknownParameters } from '../../http/validate';
import { type Operator, OperatorAuthentication } from './operator-authentication';
import { endpointOf } from '../routes';

type OperatorRequest = FastifyRequest & { operator?: Operator };

/** The Operator, as a parameter of a guarded endpoint. */
export const FromOperator = createParamDecorator((_: unknown, context: ExecutionContext): Operator =>
  operatorOf(context),
);

function operatorOf(context: ExecutionContext): Operator {
  const { operator } = context.switchToHttp().getRequest<OperatorRequest>();
  if (!operator) throw new Error('endpoint without SecretGuard');
  return operator;
}

/** The Author of the changes of a guarded endpoint, as a parameter. */
export const ByOperator = createParamDecorator((_: unknown, context: ExecutionContext): Author => {
  const { id, name } = operatorOf(context);
  return { kind: id === null ? 'secret' : 'operator', id, name, ...originOf(context) };
});

/**
 * Admits callers with the operator secret, or with an operator token that has the scope of the endpoint. Has no state:
 * Nest makes one for each module.
 */
@Injectable()
export class SecretGuard implements CanActivate {
  constructor(private readonly authentication: OperatorAuthentication) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    http.getResponse<FastifyReply>().header('cache-control', 'no-store');
    const request = http.getRequest<OperatorRequest>();
    const operator = await this.authentication.authenticate(request);
    const { scope, query } = endpointOf(request);
    if (operator.scopes !== 'all' && !operator.scopes.includes(scope))
      throw new ApiError('insufficient_scope', `This endpoint needs an operator token with the scope ${scope}.`);
    request.operator = operator;
    refuseUnknownParameters(request.query, query);
    await receiveBody(request, http.getResponse<FastifyReply>());
    return true;
  }
}
