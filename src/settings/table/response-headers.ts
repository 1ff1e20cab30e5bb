import { is } from './condition';
import { group, setting } from './setting';
import { boolean } from '../values/choices';
import { headerName } from '../values/text';

export const responseHeaderSettings = group({
  title: 'Response headers',
  requires: [is('LIMIT_RESPONSE_HEADERS_ENABLED', 'true')],
  settings: [
    setting({
      field: 'limitResponseHeadersEnabled',
      name: 'LIMIT_RESPONSE_HEADERS_ENABLED',
      type: boolean,
      default: false,
      help: 'Adds the three headers below to each response to which a limit applies.',
    }),
    setting({
      field: 'limitLimitHeader',
      name: 'LIMIT_LIMIT_HEADER',
      type: headerName,
      default: 'RateLimit-Limit',
      help: 'Name of the header with the number of requests that the limit allows.',
    }),
    setting({
      field: 'limitRemainingHeader',
      name: 'LIMIT_REMAINING_HEADER',
      type: headerName,
      default: 'RateLimit-Remaining',
      help: 'Name of the header with the number of requests that remain in the window.',
    }),
    setting({
      field: 'limitResetHeader',
      name: 'LIMIT_RESET_HEADER',
      type: headerName,
      default: 'RateLimit-Reset',
      help: 'Name of the header with the number of seconds until the window ends.',
    }),
  ],
});
