import { Catch, type RpcExceptionFilter } from '@nestjs/common';
import { throwError, type Observable } from 'rxjs';

/**
 * Hands what a handler threw to the messages seam as it is. The seam decides what the caller may know
 * (`request-failure.ts`), or redelivers the batch. Without this filter, Nest would replace the error by its own.
 */
@Catch()
export class SeamErrors implements RpcExceptionFilter {
  catch(error: unknown): Observable<never> {
    return throwError(() => error);
  }
}
