import { AdmissionStore } from '@tollgate/admission';
import { Module } from '@nestjs/common';
import { Messages } from '@tollgate/messaging';
import { METERING_OPTIONS, type MeteringOptions } from '../options';
import { DEFAULT_CONFIRM_AFTER_MS, DEFAULT_SWEEP_INTERVAL_MS, Sweeper } from './sweeper';

const sweeper = {
  provide: Sweeper,
  inject: [AdmissionStore, Messages, METERING_OPTIONS],
  useFactory: (store: AdmissionStore, messages: Messages, options: MeteringOptions) =>
    new Sweeper(store, messages, {
      sweepIntervalMs: options.sweepIntervalMs ?? DEFAULT_SWEEP_INTERVAL_MS,
      confirmAfterMs: options.confirmAfterMs ?? DEFAULT_CONFIRM_AFTER_MS,
    }),
};

@Module({ providers: [sweeper] })
export class SweepModule {}
