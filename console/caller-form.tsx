import { useState } from 'preact/hooks';
import { CallPicker } from './call-picker';
import { Field } from './parts';
import { addressOf } from './route';

/** Chooses a caller by the descriptor of its calls, whether it is limited or not. */
export function CallerForm({
  domain: first,
  descriptor: written,
}: {
  readonly domain: string;
  readonly descriptor: string;
}) {
  const [domain, setDomain] = useState(first);
  const [descriptor, setDescriptor] = useState(written);
  return (
    <form
      class="pad fields"
      onSubmit={(event) => {
        event.preventDefault();
        location.hash = addressOf('callers', { domain, descriptor });
      }}
    >
      <CallPicker
        domain={domain}
        descriptor={descriptor}
        onPick={(pickedDomain, picked) => {
          setDomain(pickedDomain);
          setDescriptor(picked);
        }}
      />
      <Field label="Descriptor: key=value,key2=value2, or JSON" required value={descriptor} onText={setDescriptor} />
      <button class="main">Look up</button>
    </form>
  );
}
