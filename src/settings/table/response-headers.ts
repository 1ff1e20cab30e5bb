import { group, setting } from './setting';
import { boolean } from '../values/choices';
import { headerName } from '../values/text';

export const responseHeaderSettings = group({
  title: 'Response headers',
  settings: [
    setting({
      field: 'limitResponseHeadersEnabled',
      name: 'LIMIT_RESPONSE_HEADERS_ENABLED',
      type: boolean,
      default: false,
      help: 'Adds the three headers below to each answer that has a limit.',
    }),
    setting({
      field: 'limitLimitHeader',
      name: 'LIMIT_LIMIT_HEADER',
      type: headerName,
      default: 'RateLimit-Limit',
      help: 'Header with the number of requests a window allows.',
    }),
    setting({
      field: 'limitRemainingHeader',
      name: 'LIMIT_REMAINING_HEADER',
      type: headerName,
      default: 'RateLimit-Remaining',
      help: 'Header with the number of requests left.',
    }),
    setting({
      field: 'limitResetHeader',
      name: 'LIMIT_RESET_HEADER',
      type: headerName,
      default: 'RateLimit-Reset',
      help: 'Header with the seconds until the window ends.',
    }),
  ],
});
