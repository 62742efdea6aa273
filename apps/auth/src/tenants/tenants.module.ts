import { Module } from '@nestjs/common';
import { ProjectModule } from '../project/project.module';
import { TenantEnd } from './tenant-end';
import { TenantOutbox } from './tenant-outbox';
import { Tenants } from './tenants';
import { TenantsController } from './tenants.controller';

@Module({
  imports: [ProjectModule],
  controllers: [TenantsController],
  providers: [TenantOutbox, Tenants, TenantEnd],
})
export class TenantsModule {}
