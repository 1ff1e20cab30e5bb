import { OperatorsController } from '../operators-controller';

/** `/api/statistics` */
export class StatisticsController extends OperatorsController {
  show(): void {
    this.stream(writeStatistics(this.operator.statistics()));
  }
}

async function* writeStatistics(
  parts: AsyncIterable<readonly (readonly [name: string, value: number])[]>,
): AsyncIterableIterator<string> {
  let separator = '{"statistics":{';
  for await (const part of parts) {
    let text = '';
    for (const [name, value] of part) {
      text += `${separator}${JSON.stringify(name)}:${JSON.stringify(value)}`;
      separator = ',';
    }
    yield text;
  }
  yield `${separator === ',' ? '' : separator}}}\n`;
}
