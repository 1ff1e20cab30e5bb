import { execFileSync } from 'node:child_process';
import { mergeMetrics } from '../../../../src/sinks/statistics/exposition/merge-metrics';
import { processMetrics } from '../../../../src/sinks/statistics/exposition/process-metrics';

describe('the metrics of several processes', () => {
  it('are one page, with the series of each metric together', () => {
    const one =
      '# HELP a text\n# TYPE a gauge\na 1\n\n# HELP b text # HELP\n# TYPE b counter\nb{x="1"} 1\nb{x="2"} 2\n';
    const other =
      '# HELP b text # HELP\n# TYPE b counter\nb{worker="1"} 3\n\n# HELP c text\n# TYPE c gauge\nc{worker="1"} 4\n';
    expect(mergeMetrics([one, other])).toBe(
      [
        '# HELP a text\n# TYPE a gauge\na 1\n',
        '# HELP b text # HELP\n# TYPE b counter\nb{x="1"} 1\nb{x="2"} 2\nb{worker="1"} 3\n',
        '# HELP c text\n# TYPE c gauge\nc{worker="1"} 4\n',
      ].join(''),
    );
  });

  it.each([
    ['a carriage return', '\r'],
    ['a line separator', '\u2028'],
    ['a paragraph separator', '\u2029'],
  ])('keep a label in which what looks like the beginning of a metric follows %s', (_, separator) => {
    const page = `# HELP a text\n# TYPE a gauge\na{x="1${separator}# HELP b text"} 1\n`;
    expect(mergeMetrics([page])).toBe(page);
  });

  it('are a page that Prometheus accepts', async () => {
    const own = await processMetrics({ region: 'eu' }).write();
    const ofWorker = own.replaceAll('region="eu"', 'region="eu",worker="1"');
    const page = mergeMetrics([own, ofWorker]);
    expect(page.match(/^process_resident_memory_bytes\{.*$/gm)).toHaveLength(2);
    expect(page.match(/^# TYPE process_resident_memory_bytes/gm)).toHaveLength(1);
    // Prints only lint that prom-client's own pages have, too.
    function problems(text: string): string {
      try {
        execFileSync('promtool', ['check', 'metrics'], { input: text, stdio: ['pipe', 'pipe', 'pipe'] });
        return '';
      } catch (error) {
        return String((error as { stderr: Buffer }).stderr);
      }
    }
    expect(problems(page)).toBe(problems(own));
  });
});
