import { Controller, Get, Header } from '@nestjs/common';
import { operatorYaml } from '../openapi/operator-document';
import { OPERATOR_PREFIX } from './prefix';

/** This API's OpenAPI document; without the secret, as there is none in it. */
@Controller(OPERATOR_PREFIX)
export class OpenApiController {
  private readonly document = operatorYaml();

  @Get('openapi.yaml')
  @Header('content-type', 'application/yaml; charset=utf-8')
  @Header('cache-control', 'no-cache')
  read(): string {
    return this.document;
  }
}
