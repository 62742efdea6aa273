import { Injectable, type OnModuleInit } from '@nestjs/common';
import { ConfigSource, type TollgateConfig } from '@tollgate/runtime';
import { loadTokenizer } from './tokenizer';

/** Loads the tokenizers of all models before a request needs them. */
@Injectable()
export class TokenizerLoader implements OnModuleInit {
  constructor(private readonly config: ConfigSource) {}

  onModuleInit(): void {
    const load = ({ models }: TollgateConfig) => models.forEach(({ tokenizer }) => loadTokenizer(tokenizer));
    load(this.config.current);
    // Loading blocks the process for 60 ms; better now than in the middle of a request.
    this.config.onChange(load);
  }
}
