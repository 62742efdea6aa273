import { Module } from '@nestjs/common';
import { Messages } from '@tollgate/messaging';
import { Outbox } from '@tollgate/messaging/nest';
import { AuthDatabase } from '../database';
import { ProjectModule } from '../project/project.module';
import { TenantEnd } from './tenant-end';
import { TenantErasures } from './tenant-erasures';
import { TenantNews } from './tenant-news';
import { Tenants } from './tenants';
import { TenantsController } from './tenants.controller';

const outbox = {
  provide: Outbox,
  inject: [AuthDatabase, Messages],
  useFactory: ({ dataSource }: AuthDatabase, messages: Messages) => new Outbox(dataSource, messages, { name: 'auth' }),
};

@Module({
  imports: [ProjectModule],
  controllers: [TenantsController],
  providers: [outbox, TenantNews, Tenants, TenantEnd, TenantErasures],
})
export class TenantsModule {}
