import type { Explanation } from '../../../streams/ports/operator';
import { readRequest } from '../../json/read-request';
import { OperatorsController } from '../operators-controller';

/** `/api/explanations` */
export class ExplanationsController extends OperatorsController {
  async create(): Promise<Explanation> {
    this.authorize('private');
    // As for /json, the type of the body is not examined: nothing is changed.
    return this.operator.explain(readRequest(await this.readJson()));
  }
}
