import subprocess
import sys

from rasplens import __version__


def test_the_package_is_runnable():
    done = subprocess.run(
        [sys.executable, "-m", "rasplens", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"rasplens {__version__}\n"


def test_asking_for_the_version_imports_nothing_heavy():
    script = (
        "import sys\nfrom rasplens.cli import main\n"
        "try: main(['--version'])\nexcept SystemExit: pass\n"
        "assert not {'torch', 'jax', 'pandas', 'plotly', 'transformer_lens'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
