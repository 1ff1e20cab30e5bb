import { NEVER, type Observable, ReplaySubject, defer } from 'rxjs';
import type { Ruleset } from '../../src/rules/ruleset';
import type { RuleMember } from '../../src/workers/primary/rules/rule-member';

export interface MemberScript {
  readonly prepare?: Observable<unknown>;
  readonly hold?: Observable<unknown>;
  readonly commit?: Observable<unknown>;
  /** Hot. */
  readonly gone$?: Observable<unknown>;
}

/** A worker that answers as the scenario says, and records what it is sent. Without a script for a step it never answers. */
export class ScriptedMember implements RuleMember {
  readonly received: string[] = [];
  readonly gone$ = new ReplaySubject<unknown>(1);
  readonly #script: MemberScript;

  constructor(script: MemberScript = {}) {
    this.#script = script;
    script.gone$?.subscribe(this.gone$);
  }

  prepare(ruleset: Ruleset): Observable<unknown> {
    return this.#step(`prepare ${[...ruleset.domains.keys()].join()}`, this.#script.prepare);
  }

  hold(): Observable<unknown> {
    return this.#step('hold', this.#script.hold);
  }

  commit(): Observable<unknown> {
    return this.#step('commit', this.#script.commit);
  }

  kill(reason: string): void {
    this.received.push(`kill: ${reason}`);
  }

  #step(name: string, script: Observable<unknown> = NEVER): Observable<unknown> {
    return defer(() => {
      this.received.push(name);
      return script;
    });
  }
}
