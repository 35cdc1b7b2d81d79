# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine with NVIDIA GPUs, pretended by files and small programs.

It runs inside the sandbox hosts with the standard library alone (Python >= 3.9). `GPULAB_ROOT` moves every path below
another folder, so that the whole of it can be tried without a container: files are then written there instead of being
mounted over the machine's own.
"""
