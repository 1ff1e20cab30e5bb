export const ANSWER =
  '{"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"requestsPerUnit":4000000000,"unit":"HOUR"},' +
  '"limitRemaining":3999999999,"durationUntilReset":"1800s"}]}';
