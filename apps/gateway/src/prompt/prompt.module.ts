import { Module } from '@nestjs/common';
import { TokenizerLoader } from './tokenizer-loader';
import { TokenizerThrottle } from './tokenizer-throttle';

/** Made by a factory, because tests wait for other times. */
const throttle = { provide: TokenizerThrottle, useFactory: () => new TokenizerThrottle() };

@Module({ providers: [throttle, TokenizerLoader], exports: [TokenizerThrottle] })
export class PromptModule {}
