"""The pretended `nvidia-smi`: one file per kind of answer; :mod:`gpusim.smi.cli` chooses."""
