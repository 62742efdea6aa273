import { All, Controller } from '@nestjs/common';
import { Anybody } from '../access/allow';
import { ConsoleError } from '../http/errors';

/** Answers every path of the backend that no other controller binds. */
@Controller('console/api')
export class UnknownRouteController {
  @All(['', '*'])
  @Anybody()
  refuse(): never {
    throw new ConsoleError('not_found', 'No such route.');
  }
}
