import { Inject, Injectable } from '@nestjs/common';
import { AdmissionStore } from '@tollgate/admission';
import type { Requests } from '@tollgate/messaging';
import { ServiceClient } from '@tollgate/messaging/nest';
import { askAgain } from './ask';
import { Charges } from './charges';
import { EventWalk } from './event-walk';
import type { Findings } from './findings';
import { RetiredMonths } from './retired-months';

/** The part of reconcile that asks metering. Rejects with UnavailableError when metering does not answer. */
@Injectable()
export class UsageAudit {
  constructor(
    @Inject(ServiceClient) private readonly services: Requests,
    private readonly admission: AdmissionStore,
    private readonly charges: Charges,
    private readonly retired: RetiredMonths,
  ) {}

  /**
   * Every event has its charge, and every charge its event, by id (event-walk.ts). Of months that metering no longer
   * keeps, the charges have the totals of the events (retired-months.ts).
   */
  async events(findings: Findings, stopped: AbortSignal): Promise<void> {
    const walk = new EventWalk(this.services, this.admission, this.charges, findings, stopped);
    await walk.run(await this.retired.prove(findings, stopped));
  }

  /** Metering's roll-ups are the sums of its events. No quarantined event is unrecorded. */
  async rollUps(findings: Findings, stopped: AbortSignal): Promise<void> {
    const quarantined = await askAgain(this.services, 'metering.rejected.audit', {}, stopped);
    findings.add(quarantined.differences, quarantined.truncated);
    for (let after: string | null | undefined; after !== null;) {
      stopped.throwIfAborted();
      const request: { after?: string } = after === undefined ? {} : { after };
      const page = await askAgain(this.services, 'metering.rollups.audit', request, stopped);
      findings.add(page.differences, page.truncated);
      after = page.nextCursor;
    }
  }
}
