import { Module } from '@nestjs/common';
import { TenantsController } from './tenants.controller';

/** Tenants: made, changed, suspended, closed, erased and repaired. */
@Module({ controllers: [TenantsController] })
export class TenantsModule {}
