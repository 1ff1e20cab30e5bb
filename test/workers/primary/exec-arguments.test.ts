import { workerExecArguments } from '../../../src/workers/primary/exec-arguments';

function argumentsOf(execArgv: readonly string[], nodeOptions?: string): readonly string[] {
  return workerExecArguments(2, { execArgv, nodeOptions, debugPort: 9229 });
}

describe('the arguments of Node for a worker', () => {
  it('are those of the primary', () => {
    expect(argumentsOf(['--require', './hook.cjs', '--max-old-space-size=200'])).toEqual([
      '--require',
      './hook.cjs',
      '--max-old-space-size=200',
    ]);
  });

  it.each(['--inspect', '--inspect=0.0.0.0:9229', '--inspect-brk', '--inspect-port=9229'])(
    'give the inspector of %s a port of its own',
    (option) => {
      expect(argumentsOf([option])).toEqual([option, '--inspect-port=9231']);
      expect(argumentsOf([], `--enable-source-maps ${option}`)).toEqual(['--inspect-port=9231']);
    },
  );

  it('give profiles with a fixed name another one', () => {
    expect(argumentsOf(['--cpu-prof', '--cpu-prof-name=weir.cpuprofile'])).toEqual([
      '--cpu-prof',
      '--cpu-prof-name=weir.cpuprofile',
      '--cpu-prof-name=weir.worker-2.cpuprofile',
    ]);
    expect(argumentsOf([], '--heap-prof-name=weir.heapprofile')).toEqual([
      '--heap-prof-name=weir.worker-2.heapprofile',
    ]);
  });
});
