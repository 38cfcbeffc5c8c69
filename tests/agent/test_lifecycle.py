"""The life of a node, with a real agent process, a real S3 and a real bus."""

from __future__ import annotations

import sys

from tests.agent.surroundings import RESULTS_BUCKET, S3, AgentNode, FakeBus, config, digest_of, stage_part, train_part


def test_a_good_life_is_ready_staged_started_done_and_leaving(node: AgentNode, s3: S3, bus: FakeBus) -> None:
    files = {"a.bin": b"a" * 1000, "deep/er/b é+%25.bin": b"b" * 70_000}
    code = "import os,pathlib,json\nd=pathlib.Path(os.environ['HEADRACE_DATA'])\nprint('sees', sorted(str(p.relative_to(d)) for p in d.rglob('*') if p.is_file()))\npathlib.Path(os.environ['HEADRACE_RESULTS'],'m.txt').write_text('model')\nopen(os.environ['HEADRACE_PROGRESS'],'a').write(json.dumps({'step':3,'total':9,'loss':0.5})+'\\n')\n"
    node.start()
    bus.await_event("Node Ready")
    node.hand_in("stage", config(stage=stage_part(s3, files)))
    staged = bus.await_event("Dataset Staged", "Dataset Failed")
    assert staged == {"files": 2, "bytes": 71_000, "digest": digest_of(files)}
    node.hand_in("train", config(train=train_part(command=[sys.executable, "-c", code])))
    done = bus.await_event("Job Done", "Job Failed")
    assert done["files"] == 1, (done, node.output())
    assert s3.get(RESULTS_BUCKET, "out/m.txt") == b"model"
    assert node.terminate() == 0
    print(bus.kinds)
    print(node.output())
    assert bus.kinds[-1] == "Node Leaving"
