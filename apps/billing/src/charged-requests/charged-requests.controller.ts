import { AdmissionStore } from '@tollgate/admission';
import { Controller } from '@nestjs/common';
import type { ReplyOf, RequestOf } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { BillingDataSource } from '../database';
import { entryOfRequest, requestsOfEntry } from './charged-requests';
import { holdOfRequest } from './request-hold';

@Controller()
export class ChargedRequestsController {
  constructor(
    private readonly dataSource: BillingDataSource,
    private readonly admission: AdmissionStore,
  ) {}

  @MessagePattern('billing.entry.requests')
  requests(request: RequestOf<'billing.entry.requests'>): Promise<ReplyOf<'billing.entry.requests'>> {
    return requestsOfEntry(this.dataSource, request);
  }

  @MessagePattern('billing.request.entry')
  entry(request: RequestOf<'billing.request.entry'>): Promise<ReplyOf<'billing.request.entry'>> {
    return entryOfRequest(this.dataSource, request);
  }

  @MessagePattern('billing.request.hold')
  hold(request: RequestOf<'billing.request.hold'>): Promise<ReplyOf<'billing.request.hold'>> {
    return holdOfRequest(this.admission, request);
  }
}
