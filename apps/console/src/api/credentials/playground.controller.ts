import { Controller, HttpCode, Param, Post, Req } from '@nestjs/common';
import { Type } from '@sinclair/typebox';
import type { Author } from '@tollgate/contracts';
import { ConfigSource } from '@tollgate/runtime';
import type { FastifyRequest } from 'fastify';
import { AllowInTenant, ByCaller, FromCaller, type Caller } from '../../access/allow';
import { bodyOf } from '../../http/body';
import { ConsoleError } from '../../http/errors';
import type { Tried } from '../answers';
import { exact, ModelField } from '../fields';
import { Playgrounds } from './playgrounds';

const MAX_PROMPT_CHARS = 8_000;
const MAX_OUTPUT_TOKENS = 1_000;

const readTrial = bodyOf(
  Type.Object(
    {
      model: ModelField,
      prompt: Type.String({ minLength: 1, maxLength: MAX_PROMPT_CHARS }),
      maxTokens: Type.Integer({ minimum: 1, maximum: MAX_OUTPUT_TOKENS }),
    },
    exact,
  ),
);

/** One request of the playground. It costs credit of the tenant, like every request. */
@Controller('console/api/tenants/:tenantId/playground')
export class PlaygroundController {
  constructor(
    private readonly playgrounds: Playgrounds,
    private readonly config: ConfigSource,
  ) {}

  @Post()
  @AllowInTenant('models.try')
  @HttpCode(200)
  run(
    @Param('tenantId') tenantId: string,
    @FromCaller() caller: Caller,
    @ByCaller() by: Author,
    @Req() request: FastifyRequest,
  ): Promise<Tried> {
    const trial = readTrial(request);
    const model = this.config.current.models.find(({ id }) => id === trial.model);
    if (!model) throw new ConsoleError('not_found', 'The catalog has no such model.');
    return this.playgrounds.run({ tenantId, caller, by }, { ...trial, kind: model.kind });
  }
}
