import { OperatorsController } from '../operators-controller';

/** `/api/health` */
export class HealthController extends OperatorsController {
  show(): Promise<object> {
    return this.operator.health();
  }
}
