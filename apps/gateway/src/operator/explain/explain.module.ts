import { Module } from '@nestjs/common';
import { ExplainController } from './explain.controller';
import { RequestLives } from './request-lives';

/** Explains what happened to a request, and what a key may do now. */
@Module({ controllers: [ExplainController], providers: [RequestLives] })
export class ExplainModule {}
