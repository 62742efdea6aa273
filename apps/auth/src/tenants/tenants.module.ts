import { Module } from '@nestjs/common';
import { OutboxModule } from '@tollgate/messaging/nest';
import { AuthDataSource } from '../database';
import { ProjectModule } from '../project/project.module';
import { TenantEnd } from './tenant-end';
import { TenantErasures } from './tenant-erasures';
import { TenantNews } from './tenant-news';
import { Tenants } from './tenants';
import { TenantsController } from './tenants.controller';

@Module({
  imports: [ProjectModule, OutboxModule.of('auth', AuthDataSource)],
  controllers: [TenantsController],
  providers: [TenantNews, Tenants, TenantEnd, TenantErasures],
})
export class TenantsModule {}
