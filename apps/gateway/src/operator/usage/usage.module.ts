import { Module } from '@nestjs/common';
import { UsageExportController } from './usage-export.controller';
import { OperatorUsageController } from './usage.controller';

/** Usage, its requests and its export. */
@Module({ controllers: [OperatorUsageController, UsageExportController] })
export class UsageModule {}
