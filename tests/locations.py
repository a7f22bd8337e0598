"""Where files stand that tests read."""

from pathlib import Path

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
DESIGNS = ROOT / "tests" / "data" / "dfmodel"  # set-up files, most of them published
SCHEDULES = ROOT / "tests" / "data" / "canonical" / "schedules.json"  # recorded runs of the public scheduler
BUILDS = "FOLDER_OF_BUILDS"  # names, in the environment, a folder that workers share
