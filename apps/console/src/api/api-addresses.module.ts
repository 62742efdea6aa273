import { Module } from '@nestjs/common';
import { ApiAddresses } from './api-addresses';

@Module({ providers: [ApiAddresses], exports: [ApiAddresses] })
export class ApiAddressesModule {}
