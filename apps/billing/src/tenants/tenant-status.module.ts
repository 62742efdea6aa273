import { Module } from '@nestjs/common';
import { PostingModule } from '../post/posting.module';
import { RepairModule } from '../repair/repair.module';
import { TenantStatus } from './tenant-status';
import { TenantStatusController } from './tenant-status.controller';

@Module({
  imports: [PostingModule, RepairModule],
  controllers: [TenantStatusController],
  providers: [TenantStatus],
})
export class TenantStatusModule {}
