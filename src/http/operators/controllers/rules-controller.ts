import { HttpError } from '../../server/errors';
import { OperatorsController } from '../operators-controller';
import { writeRules } from '../write-rules';

/** `/api/rules` and `/api/rules/:domain` */
export class RulesController extends OperatorsController {
  index(): Promise<void> {
    return this.#answer(undefined);
  }

  show(): Promise<void> {
    return this.#answer(this.ctx.params.id);
  }

  async #answer(domain: string | undefined): Promise<void> {
    const listing = await this.operator.rules(domain);
    if (listing === undefined) {
      const message = 'the active rules have no such domain';
      throw new HttpError({ status: 404, code: 'unknown_domain', message });
    }
    this.stream(writeRules(listing));
  }
}
