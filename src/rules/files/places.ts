import type { PlaceOf } from '../rule-place';
import type { RuleLocations } from './fields/read-context';

/** Finds the places of rules from their locations: lines and columns are computed only for the rules that need them. */
export function placesIn(locations: RuleLocations): PlaceOf {
  return (rule) => {
    const location = locations.get(rule);
    return location && { file: location.source.file, ...location.source.position(location.key) };
  };
}
