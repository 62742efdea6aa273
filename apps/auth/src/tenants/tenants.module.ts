import { Module } from '@nestjs/common';
import { TenantOutbox } from './tenant-outbox';
import { Tenants } from './tenants';
import { TenantsController } from './tenants.controller';

@Module({ controllers: [TenantsController], providers: [TenantOutbox, Tenants], exports: [Tenants] })
export class TenantsModule {}
