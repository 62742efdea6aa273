import { Module } from '@nestjs/common';
import { ProjectionLoop } from './projection-loop';
import { Projector } from './projector';

@Module({ providers: [Projector, ProjectionLoop], exports: [Projector] })
export class ProjectModule {}
