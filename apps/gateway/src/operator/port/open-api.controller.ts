import { Controller, Get, Header } from '@nestjs/common';
import { operatorYaml } from '../../openapi/operator-document';
import { OPERATOR_PREFIX } from '../prefix';

/** The OpenAPI document of this API. It needs no secret, because it contains none. */
@Controller(OPERATOR_PREFIX)
export class OpenApiController {
  @Get('openapi.yaml')
  @Header('content-type', 'application/yaml; charset=utf-8')
  @Header('cache-control', 'no-cache')
  read(): string {
    return operatorYaml();
  }
}
