import { Catch, type RpcExceptionFilter } from '@nestjs/common';
import { throwError, type Observable } from 'rxjs';

/**
 * Passes a handler's error to the messages seam unchanged. The seam decides what the caller may see
 * (`request-failure.ts`), or redelivers the batch. Without this filter Nest would replace the error with its own.
 */
@Catch()
export class SeamErrors implements RpcExceptionFilter {
  catch(error: unknown): Observable<never> {
    return throwError(() => error);
  }
}
