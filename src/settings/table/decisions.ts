import { is } from './condition';
import { group, setting } from './setting';
import { boolean } from '../values/choices';
import { ratio } from '../values/numbers';

export const decisionSettings = group({
  title: 'Decisions',
  settings: [
    setting({
      field: 'nearLimitRatio',
      name: 'NEAR_LIMIT_RATIO',
      type: ratio({ min: 0, max: 1 }),
      default: 0.8,
      help: 'Fraction of a limit above which hits are counted as near the limit.',
    }),
    setting({
      field: 'shadowMode',
      name: 'SHADOW_MODE',
      type: boolean,
      default: false,
      help: 'Allows every request, but still counts those that are over their limits.',
    }),
    setting({
      field: 'quotaMode',
      name: 'QUOTA_MODE',
      type: boolean,
      default: false,
      help: 'Treats every rule as a quota: a request is allowed as long as one of its quotas allows it.',
    }),
    setting({
      field: 'responseDynamicMetadata',
      name: 'RESPONSE_DYNAMIC_METADATA',
      type: boolean,
      default: false,
      help: 'Adds the request, the metadata of its rules and how it was decided to each response, as dynamic metadata.',
    }),
    setting({
      field: 'responseDynamicMetadataDecisions',
      name: 'RESPONSE_DYNAMIC_METADATA_DECISIONS',
      type: boolean,
      default: true,
      requires: [is('RESPONSE_DYNAMIC_METADATA', 'true')],
      help: 'Includes how each descriptor was decided; false: the dynamic metadata is exactly that of the Go service.',
    }),
    setting({
      field: 'limitNameFromRule',
      name: 'LIMIT_NAME_FROM_RULE',
      type: boolean,
      default: false,
      help: 'Names the limits in responses after the path of their rule where the rule has no name.',
    }),
  ],
});
